"""Pass calls to language models on to an upstream, with memories in the request and the answer kept in a session."""

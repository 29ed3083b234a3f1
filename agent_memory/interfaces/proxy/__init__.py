"""Forward calls to language models to an upstream. Add memories to the request, and store the answer in a session."""

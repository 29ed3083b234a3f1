"""JSON values stored by path and key, as in a LangGraph store."""

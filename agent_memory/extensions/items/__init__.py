"""Items: JSON values stored by namespace path and key, like a LangGraph store."""

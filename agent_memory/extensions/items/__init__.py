"""Items: JSON values stored by namespace path and key, as in a LangGraph store."""

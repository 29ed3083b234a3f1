"""JSON values by namespace path and key: what LangGraph calls a store."""

"""How good recall is: public data sets, metrics, a run against any server that speaks our API, and the report of it."""

"""Random testing: generated requests and sequences, checked against the OpenAPI document and a model of the contract."""

"""Random testing: requests that nobody thought of, against the OpenAPI document and a small model of the contract."""

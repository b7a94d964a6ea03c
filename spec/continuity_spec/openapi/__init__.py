"""The OpenAPI document of the contract, and whether an answer is what it documents."""

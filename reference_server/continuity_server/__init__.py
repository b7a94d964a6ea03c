"""The reference server of Session Continuity: a real server that follows the contract. It imports neither the spec nor the kit."""

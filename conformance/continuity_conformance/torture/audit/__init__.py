"""The audit of a campaign: what is known about a conversation, what is wrong with it, and the story of that. Pure: knows neither HTTP nor processes."""

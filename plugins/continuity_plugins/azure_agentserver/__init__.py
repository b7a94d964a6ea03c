"""azure-ai-agentserver: Microsoft's library for agents behind the Responses API, with a small agent of ours."""

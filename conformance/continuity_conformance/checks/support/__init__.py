"""What several checks need, or what would make the module of an area too long. There is no check here."""

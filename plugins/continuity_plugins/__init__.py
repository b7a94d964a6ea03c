"""The bundled plugins. Like any plugin, they use only the public API of the kit."""

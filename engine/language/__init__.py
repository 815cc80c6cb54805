"""Language packs compiled to vocabularies of motors, and text encoded with them. Import the modules by name."""

"""Commands over the Python interface: arguments in, tables or JSON out."""

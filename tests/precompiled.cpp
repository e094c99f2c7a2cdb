// Nothing: a target with precompiled headers wants a source.

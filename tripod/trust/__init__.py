"""Keys, seals, actors, anchors, exports, proofs."""

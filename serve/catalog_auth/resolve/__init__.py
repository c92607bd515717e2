"""From a document and one of its targets to the steps that fetch it: alternatives, one way each."""

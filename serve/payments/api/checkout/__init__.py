"""Customers' payments between request and order: what is asked, each step's effect, one way on."""

"""`tollgate check-environment`: a file of variables, told line by line in the words of Tollgate."""

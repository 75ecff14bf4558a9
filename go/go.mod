module esker

go 1.24

module esker/ethdb

go 1.25.0

require (
	esker v0.0.0
	github.com/ethereum/go-ethereum v1.17.10
)

replace esker => ../

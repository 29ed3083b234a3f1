"""The tools of language models without the network: their schemas, arguments and answers, and the calls that models make of them."""

"""PyTorch's operator database, run on the ltc device and on the CPU and compared.

``python -m opinfo`` from ``ltc-python`` runs it; ``--help`` lists the options. The modules, in the order data flows:
``database`` names the entries, ``numbers`` puts others in the places of a sample's numbers where that is asked for,
``samples`` moves inputs to a device, ``check`` compares one entry, ``worker``
does so in a process of its own, ``run`` drives workers, ``report`` tells the result.
"""

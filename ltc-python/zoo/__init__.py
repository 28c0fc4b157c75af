"""Models as people have them, trained on ltc in each of its ways and on the CPU, and compared.

``python -m zoo`` from ``ltc-python`` runs it; ``--help`` lists the options. The modules, in the order data flows:
``models`` makes each entry's model and data, ``task`` says what an entry is, ``train`` trains one in every way,
``worker`` does so in a process of its own, ``run`` drives workers and keeps their results, ``report`` judges and prints
them.
"""

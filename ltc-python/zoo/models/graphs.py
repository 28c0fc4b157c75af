"""Networks on graphs of PyTorch Geometric."""

import torch
import torch.nn.functional as F

from ..task import Task

_NODES, _EDGES, _FEATURES, _CLASSES = 200, 800, 32, 6


def _graph():
    """Features, edges, classes, and which nodes are known."""
    edges = torch.randint(0, _NODES, (2, _EDGES))
    known = torch.randperm(_NODES)[:60]
    return torch.randn(_NODES, _FEATURES), edges, torch.randint(0, _CLASSES, (_NODES,)), known


def _loss(model, batch):
    features, edges, classes, known = batch
    return F.cross_entropy(model(features, edges)[known], classes[known])


def _basic(name, **options):
    def make():
        import torch_geometric.nn

        model = getattr(torch_geometric.nn, name)(_FEATURES, 32, 2, _CLASSES, **options)
        return Task(model, [_graph()], _loss)

    return make


class _Molecules(torch.nn.Module):
    """Whole graphs are classified: their nodes are pooled."""

    def __init__(self):
        super().__init__()
        import torch_geometric.nn

        self.body = torch_geometric.nn.GIN(_FEATURES, 32, 2)
        self.pool, self.head = torch_geometric.nn.global_mean_pool, torch.nn.Linear(32, _CLASSES)

    def forward(self, features, edges, graphs, count):
        return self.head(self.pool(self.body(features, edges), graphs, count))


def _molecules():
    def batch():
        features, edges, _, _ = _graph()
        graphs = torch.arange(_NODES) // 10
        edges = edges // 10 * 10 % _NODES + torch.randint(0, 10, edges.shape)
        return features, edges, graphs, torch.randint(0, _CLASSES, (_NODES // 10,))

    def loss(model, batch):
        return F.cross_entropy(model(*batch[:3], _NODES // 10), batch[3])

    return Task(_Molecules(), [batch() for _ in range(3)], loss)


ENTRIES = {
    "gcn": _basic("GCN", dropout=0.3),
    "gat": _basic("GAT", heads=4, dropout=0.3),
    "sage": _basic("GraphSAGE"),
    "gin, pooled": _molecules,
}

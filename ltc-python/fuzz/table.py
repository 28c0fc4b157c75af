"""Templates of statements. In each ``{0}``, ``{1}`` are tensors; plain ones compute the same bits in every kernel."""

UNARY_PLAIN = """{0}.relu() {0}.abs() {0}.neg() {0}.sign() {0}.floor() {0}.ceil() {0}.trunc() {0}.square() {0}.isnan()
{0}.isinf() {0}.isfinite() {0}.logical_not() torch.signbit({0}.nan_to_num()) {0}.nan_to_num()
F.hardtanh({0}) F.leaky_relu({0},0.125)
{0}.sgn() +{0} -{0} {0}.clone() F.relu6({0}) {0}.clamp(-1,1) {0}.clamp(min=0.5) {0}.contiguous() {0}.zero_().add(1)
torch.zeros_like({0}) torch.full_like({0},2) F.threshold({0},0.5,2.0) F.hardshrink({0}) {0}.heaviside({0}) {0}.frac()
{0}.round()""".split()

UNARY = """F.softshrink({0}) {0}.tanh() {0}.sigmoid() {0}.exp() {0}.log() {0}.sqrt() {0}.rsqrt() {0}.reciprocal()
{0}.sin() {0}.cos() {0}.erf() {0}.log1p() {0}.expm1() F.softplus({0}) F.gelu({0}) F.silu({0}) F.elu({0}) F.mish({0})
F.logsigmoid({0}) {0}.exp2() {0}.log2() {0}.atan() {0}.asinh() {0}.softmax(-1) {0}.log_softmax(0) {0}.angle() {0}.conj()
{0}.sinc() {0}.erfinv() {0}.logit(0.1) {0}.sinh() {0}.tan() {0}.lgamma() {0}.digamma() F.normalize({0},dim=-1)
F.hardswish({0}) F.hardsigmoid({0}) F.tanhshrink({0}) F.selu({0}) F.glu({0},-1)""".split()

INTS = """~{0} {0}.bitwise_and({0}) {0}.bitwise_or(1) {0}^{0} {0}&1""".split()

REDUCE = """{0}.sum() {0}.sum(0) {0}.sum(-1,keepdim=True) {0}.mean() {0}.mean(-1) {0}.prod() {0}.prod(0) {0}.var()
{0}.std(0) {0}.logsumexp(-1) {0}.norm() {0}.norm(1,0) {0}.cumsum(0) {0}.cumprod(-1) {0}.sum(dtype=torch.float64)
{0}.nansum() {0}.logcumsumexp(0) {0}.var(-1,unbiased=False) torch.std_mean({0})[1] {0}.trace() {0}.nanmean()
{0}.renorm(2,0,1.0) torch.dist({0},{0}) F.softmin({0},0)""".split()

REDUCE_PLAIN = """{0}.amax() {0}.amin(0) {0}.max(-1)[0] {0}.max(0)[1] {0}.min(-1)[1] {0}.argmax() {0}.argmin(-1)
{0}.any() {0}.all(0) {0}.any(-1,keepdim=True) {0}.count_nonzero() {0}.sort(-1)[0] {0}.sort(0,stable=True)[1]
{0}.argsort(-1,stable=True) {0}.cummax(0)[0] {0}.median() {0}.topk(1)[0] {0}.kthvalue(1)[0] {0}.mode()[0] {0}.isin({0})
{0}.aminmax()[1] {0}.diff() {0}.unique() {0}.nonzero() {0}[{0}>0] {0}.bincount() {0}.tril() {0}.triu(1)""".split()

VIEW = """{0}[0] {0}[-1] {0}[...,0] {0}[1:] {0}[::2] {0}[...,:2] {0}[None] {0}[:,None] {0}.T {0}.t() {0}.mT
{0}.transpose(0,-1) {0}.flatten() {0}.reshape(-1) {0}.view(-1) {0}.unsqueeze(0) {0}.unsqueeze(-1) {0}.squeeze()
{0}.squeeze(0) {0}.diagonal() {0}.chunk(2)[0] {0}.chunk(2,-1)[-1] {0}.split(1)[0] {0}.unbind(0)[0] {0}.narrow(0,0,1)
{0}.select(-1,0) {0}.movedim(0,-1) {0}.detach() {0}.view_as({0}) {0}.expand(2,*{0}.shape) {0}.unfold(0,1,1)
{0}.as_strided((2,),(1,)) {0}.as_strided((2,2),(1,1)) {0}.permute(*range({0}.dim()-1,-1,-1)) {0}.swapaxes(0,-1)
torch.broadcast_to({0},(2,*{0}.shape)) {0}.real torch.view_as_real({0}) {0}.view(torch.int32) {0}.view(torch.uint8)
{0}.data {0}.unflatten(0,(1,-1)) {0}.expand_as({0}) {0}[...] {0}[1:1] {0}.ravel() {0}.adjoint() torch.atleast_2d({0})
{0}.tensor_split(2)[1] {0}.reshape(-1,2) torch.ops.aten.alias({0})""".split()

COPY = """{0}.flip(0) {0}.roll(1,0) {0}.repeat(2) {0}.repeat_interleave(2) {0}.tile(2) F.pad({0},(1,0)) {0}.rot90()
torch.cat([{0},{0}]) torch.stack([{0},{0}],-1) {0}.expand(2,*{0}.shape).clone() {0}.T.contiguous() {0}.new_zeros(2)
{0}.new_full((2,),3) torch.ones_like({0},dtype=torch.int64) {0}.take_along_dim({0}.argsort(0,stable=True),0)
{0}.index_select(0,idx([0,0])) {0}[idx([0])] {0}[...,idx([0,-1])] {0}.gather(0,idx([[0]])) {0}.take(idx([0,0]))
{0}.clone(memory_format=torch.contiguous_format) {0}.diag_embed() F.one_hot({0}) {0}.where({0}>0,-1)
{0}.masked_fill({0}>0,2) F.unfold({0}[None,None],1) {0}.to(dev) torch.meshgrid({0},{0},indexing="ij")[0]
torch.block_diag({0},{0})""".split()

BINARY_PLAIN = """{0}+{1} {0}-{1} {0}*{1} torch.maximum({0},{1}) torch.minimum({0},{1}) torch.fmax({0},{1})
torch.fmin({0},{1}) {0}=={1} {0}!={1} {0}<{1} {0}>={1} torch.logical_and({0},{1}) torch.logical_xor({0},{1})
torch.where({0}>{1},{0},{1}) torch.where({0}.bool(),{0},{1}) torch.sub({0},{1},alpha=2) torch.add({0},{1},alpha=-1)
{0}/{1} torch.copysign({0},{1}.nan_to_num()) torch.stack([{0},{1}]) torch.cat([{0},{1}]) torch.cat([{0},{1}],-1)
{0}.type_as({1}) torch.heaviside({0},{1}) {0}.clamp(max={1}) {0}.clamp({1},2*{1}) torch.lerp({0},{1},0.25)
torch.addcmul({0},{1},{1}) {0}.masked_fill({1}>0,1) torch.isclose({0},{1}) {0}.expand_as({1}) {0}.rsub({1})
{0}.broadcast_to({1}.shape) torch.bucketize({0},{1}) torch.searchsorted({1},{0}) torch.isin({0},{1})
torch.vstack([{0},{1}]) torch.complex({0},{1}) torch.nextafter({0},{1}) torch.gcd({0},{1})""".split()

BINARY = """{0}**{1} torch.atan2({0},{1}) torch.hypot({0},{1}) torch.logaddexp({0},{1}) torch.xlogy({0},{1}) {0}@{1}
{0}@{1}.mT torch.fmod({0},{1}) torch.remainder({0},{1}) {0}//{1} torch.div({0},{1},rounding_mode="trunc")
F.linear({0},{1}) F.mse_loss({0},{1}) F.l1_loss({0},{1}) F.smooth_l1_loss({0},{1}) torch.outer({0},{1})
torch.mv({0},{1}) torch.dot({0},{1}) torch.bmm({0},{1}) torch.addmm({0},{1},{1}) torch.addcdiv({0},{1},{1})
torch.kron({0},{1}) torch.cdist({0},{1}) F.cosine_similarity({0},{1},dim=-1) F.binary_cross_entropy_with_logits({0},{1})
torch.einsum("ij,kj->ik",{0},{1}) F.kl_div({0},{1}) torch.lerp({0},{1},{0}*0.3125) torch.baddbmm({0},{1},{1})
F.prelu({0},{1}) F.huber_loss({0},{1}) F.scaled_dot_product_attention({0},{1},{1}) F.embedding({0},{1})
F.cross_entropy({0},{1}) F.nll_loss({0},{1}) torch.tensordot({0},{1},1)""".split()

INPLACE_PLAIN = """{0}.add_(1) {0}.mul_(2) {0}.neg_() {0}.zero_() {0}.fill_(3) {0}.relu_() {0}.clamp_(-2,2) {0}.abs_()
{0}.sub_(0.5) {0}.masked_fill_({0}>0,1) {0}[0]=2 {0}[...,0]=-1 {0}[::2]+=1 {0}[{0}>0]=0 {0}.t_() {0}.squeeze_()
{0}.unsqueeze_(0) {0}.transpose_(0,-1) {0}.detach().add_(1) {0}.data.mul_(-1) {0}.sign_() {0}.eq_(1)
{0}.flatten().add_(1) {0}.view(-1)[0:1].fill_(7) {0}.fill_diagonal_(1) {0}.index_fill_(0,idx([0]),4)
{0}.index_put_((idx([0]),),{0}[0].clone()) {0}.tril_() {0}.floor_() {0}.div_(2)
{0}.index_add_(0,idx([0]),{0}[:1].clone()) {0}.index_copy_(0,idx([0]),{0}[-1:].clone()) {0}.scatter_(0,idx([[0]]),5)
{0}.logical_not_() {0}.resize_as_({0}) {0}.round_() {0}.set_({0}.clone()) {0}.requires_grad_() {0}.detach_()
{0}.data={0}.data*2 {0}.requires_grad_(False) {0}.zero_()""".split()

INPLACE = """{0}.tanh_() {0}.sigmoid_() {0}.exp_() {0}.sqrt_() {0}.pow_(2) {0}.cumsum_(0) {0}.sin_() {0}.reciprocal_()
{0}.remainder_(2)""".split()

WRITES_PLAIN = """{0}.add_({1}) {0}.sub_({1}) {0}.mul_({1}) {0}.copy_({1}) {0}[0]={1} {0}[...,:1]={1} {0}.div_({1})
{0}.addcmul_({1},{1}) {0}.lerp_({1},0.5) {0}.masked_fill_({1}>0,2) torch.add({1},1,out={0}) torch.mul({1},{1},out={0})
{0}[{1}>0]=1 {0}.clamp_(max={1}) {0}.data={1}.data torch._foreach_add_([{0}],[{1}]) torch._foreach_mul_([{0}],2.0)
{0}.add_({1},alpha=2) torch.cat([{1},{1}],out={0}) {0}.masked_scatter_({0}>0,{1}) {0}.eq_({1})
{0}.index_put_((idx([0,0]),),{1},accumulate=True) {0}.t().add_({1}) {0}.logical_and_({1})
{0}.expand(2,*{0}.shape)[0].copy_({1}) torch._foreach_lerp_([{0}],[{1}],0.5)
torch._foreach_addcmul_([{0}],[{1}],[{1}],0.5) torch._foreach_zero_([{0},{1}]) torch._foreach_copy_([{0}],[{1}])
torch._foreach_maximum_([{0}],[{1}]) {0}.set_({1}.clone()) torch._foreach_neg_([{0},{1}])
{0}.grad={1}.detach().clone()""".split()

SCALARS = ["2", "-1", "0", "0.5", "True", "-0.0", "float('inf')", "float('nan')", "1e-3", "3", "1j"]

SCALAR_PLAIN = """{0}+{s} {s}-{0} {0}*{s} {0}/{s} {0}=={s} {0}>{s} torch.where({0}>0,{0},{s})
torch.add({0},{0},alpha={s}) {0}.clamp({s}) {s}/{0} {0}.new_full((2,),{s}) torch.sub({0},{s}) torch.full_like({0},{s})
{0}.masked_fill({0}>1,{s}) torch.add({s},{0}) torch.rsub({0},{s}) F.pad({0},(0,1),value={s})""".split()

SCALAR = """{0}**{s} {s}**{0} {0}//{s} {0}%{s} {s}//{0} torch.fmod({0},{s}) torch.xlogy({0},{s}) torch.xlogy({s},{0})
torch.logit({0},{s}) F.celu({0},{s})""".split()

DRAWS = """torch.rand(3,device=dev) torch.randn(2,3,device=dev) torch.rand_like({0}) torch.randn_like({0})
{0}.uniform_() {0}.normal_() {0}.bernoulli_(0.4) F.dropout({0},0.4) torch.randint(5,(3,),device=dev)
torch.randperm(5,device=dev) torch.bernoulli({0}.clamp(0,1).nan_to_num(0.5))
torch.multinomial({0}.abs().nan_to_num(1,2,2)+0.1,2) {0}.random_(0,4) {0}.exponential_() torch.normal({0},1.0)
torch.randint_like({0},3) F.dropout1d({0},0.3) torch.rand(0,device=dev) {0}.cauchy_() {0}.geometric_(0.5)
F.alpha_dropout({0},0.3,True) torch.poisson({0}.abs().nan_to_num(1,2,2)) torch.rand(2,device=dev,dtype=torch.float64)
torch.randn(2,device=dev,dtype=torch.bfloat16) {0}.log_normal_() F.rrelu({0},training=True)
F.gumbel_softmax({0})""".split()

FACTORIES = """torch.zeros(2,3,device=dev) torch.ones(3,device=dev) torch.arange(6,device=dev)
torch.arange(0,1,0.25,device=dev) torch.full((2,),3,device=dev) torch.full((3,),0.5,device=dev) torch.eye(3,device=dev)
torch.linspace(0,1,5,device=dev) torch.scalar_tensor(2.5,device=dev) torch.tensor([1.5,2],device=dev)
torch.tensor(3,device=dev) torch.tril_indices(3,3,device=dev) torch.zeros(0,3,device=dev) torch.ones((),device=dev)
torch.full((2,2),True,device=dev) torch.logspace(0,1,3,device=dev) torch.tensor([[True,False]],device=dev)
torch.hann_window(4,device=dev) torch.zeros(2,dtype=torch.float16,device=dev) torch.full((2,),1j,device=dev)
torch.empty(0,device=dev) torch.arange(True,5,device=dev)""".split()

LAYERS = """F.layer_norm({0},{0}.shape[-1:]) F.conv1d({0}[None,None].flatten(2),w({0},(2,1,2)))
F.max_pool1d({0}.reshape(1,1,-1),2) F.avg_pool1d({0}.reshape(1,1,-1),2) F.group_norm({0}[None],1)
F.batch_norm({0},None,None,training=True) F.instance_norm({0}[None])
F.conv2d({0}.reshape(1,1,*{0}.shape[-2:]),w({0},(1,1,1,1))) F.interpolate({0}.reshape(1,1,-1),scale_factor=2)
F.adaptive_avg_pool1d({0}.reshape(1,1,-1),2) F.adaptive_max_pool1d({0}.reshape(1,1,-1),2)
F.pixel_shuffle({0}.reshape(1,4,1,-1),2) F.linear({0},w({0},(2,{0}.shape[-1]))) F.embedding(idx([0,0]),{0})
F.cross_entropy({0},idx([0]*{0}.shape[0])) F.rms_norm({0},{0}.shape[-1:]) F.embedding_bag(idx([[0,0]]),{0})
F.nll_loss({0},idx([0]*{0}.shape[0])) F.conv_transpose1d({0}.reshape(1,1,-1),w({0},(1,1,2)))
F.pad({0}[None],(1,1),mode="replicate") F.max_pool2d({0}[None],1)""".split()

FAILS = """{0}.flatten()[idx([99999])] {0}.index_select(0,idx([99])) {0}.take(idx([99999]))
F.embedding(idx([0,77]),torch.ones(3,2,device=dev)) torch.bernoulli({0}.float()*0+2)
torch.ones(3,2,device=dev).gather(0,idx([[9]])) F.nll_loss(torch.zeros(2,3,device=dev),idx([0,5]))
torch.normal(torch.zeros(2,device=dev),torch.full((2,),-1.0,device=dev)) torch.ones(2,device=dev)[idx([5])]""".split()

BACKWARD = """{0}.sum().backward() {0}.mean().backward(retain_graph=True) {0}.backward(torch.ones_like({0}))
({0}*{0}).sum().backward() {0}.sum().backward(create_graph=True) {0}.relu().sum().backward()
{0}.float().pow(2).sum().backward() {0}.prod().backward()""".split()

GRAD = """torch.autograd.grad({0}.sum(),{1}) torch.autograd.grad({0}.sum(),{1},create_graph=True)
torch.autograd.grad(({0}*{0}).sum(),[{1}],allow_unused=True) torch.func.grad(lambda v:(v*v).sum())({1})
torch.func.vmap(lambda v:v*2)({1}) torch.func.jvp(lambda v:v*v,({1},),({1},))
torch.autograd.grad({0},{1},torch.ones_like({0}),retain_graph=True)""".split()

HOOKS = """{0}.register_hook(lambda g:g*2) {0}.register_hook(lambda g:None) {0}.retain_grad()
{0}.register_post_accumulate_grad_hook(lambda t:t.grad.mul_(0.5)) {0}.grad=None {0}.grad.zero_()
{0}.register_hook(lambda g:g.clamp(-1,1))""".split()

OPTIMISERS = """SGD({0},lr=0.1) SGD({0},lr=0.1,momentum=0.9)
SGD({0},lr=0.1,momentum=0.9,nesterov=True,weight_decay=0.01) Adam({0},lr=0.01) Adam({0},lr=0.01,amsgrad=True)
AdamW({0},lr=0.01) RMSprop({0},lr=0.01) RMSprop({0},lr=0.01,centered=True,momentum=0.5) Adagrad({0},lr=0.1)
Adadelta({0}) Adamax({0}) NAdam({0}) RAdam({0}) Rprop({0}) ASGD({0})""".split()

#: What a step has from the host: counts, draws, tensors that go to the device, and what is selected by values.
HOST = [
    "{0} * H.count.add_(1)",
    "{0} * (H.count.add_(1) // 7)",
    "{0} + int(H.count.add_(1) // 5)",
    "{0} * (H.real.add_(1) // 9).item()",
    "{0} * math.sqrt((H.real.add_(1) // 9).item())",
    "{0} * float(f'{{(H.real.add_(1) // 9).item():.1f}}')",
    "torch.full((2,), (H.real.add_(1) // 8).item(), device=dev) * {0}.reshape(-1)[:1]",
    "{0} + (H.row.add_(1) // 5).to(dev)[:1]",
    "{0} * (H.row.add_(1) > 12).nonzero().shape[0]",
    "{0} + torch.randint(0, 4, (1,), generator=H.draws).to(dev)",
    "{0} * 2 if torch.rand([], generator=H.draws) < 0.3 else {0} * 3",
    "{0}.reshape(-1)[{0}.reshape(-1) > 0].sum()",
    "{0}.reshape(-1).nonzero().sum()",
]

#: What a step finds where it left it: tensors, numbers that it changes, what it reads off the device. And how it leaves
#: them there.
KEPT = [
    "{0} + K.t",
    "{0} * K.pair[1].reshape(-1)[:1].sum()",
    "{0} * K.f",
    "{0} * 2 if K.n % 3 == 0 else {0} * 4",
    "{0} + K.stats['a'].reshape(-1)[:1].sum()",
    "{0} * 2 if K.f > 3 else {0}",
]
KEEPS = [
    "K.t = {0}.detach().float().sum()",
    "K.t = K.t * 0.5 + {0}.detach().float().sum()",
    "K.t = {0}.detach()",
    "K.pair = ({0}.detach(), K.pair[0])",
    "K.n += 1",
    "K.n -= 2",
    "K.f += 0.5",
    "K.f *= 0.5",
    "K.f += {0}.detach().float().sum().item()",
    "K.f = {0}.detach().float().sum().item() * 2",
    "K.seen.append({0}.detach())",
    "K.seen.append({0}.detach().float().sum().item())",
    "K.n += ({0}.detach() > 0).sum().item()",
    "K.last = ({0}.detach() > 0).sum().item()",
    "K.seen.append(({0}.detach() + 1, 1.5))",
    "K.stats['a'] = {0}.detach()",
]

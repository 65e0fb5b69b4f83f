// Optimizer steps over lists of parameters, in place.
#include "kernels/cpu/optim/optimizer.h"

#include "dispatch/record.h"

using namespace facula;

namespace {
constexpr const char* of_optimizers =
    "derivatives, vmap: an optimizer steps over the parameters of one model, under no_grad; "
    "sample: tests/python/optim takes its steps, tests/differential/optim "
    "beside PyTorch's";

// There are no results.
void change_in_place(Meta&) {}
}  // namespace

OP(_fused_adam_){
    .schema =
        "_fused_adam_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, "
        "Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float "
        "lr, "
        "float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, "
        "Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    .doc = "One step of Adam for every parameter in self.",
    .forms = function,
    .meta = change_in_place,
    .cpu = cpu::fused_adam_kernel,
    .hole = of_optimizers,
};
OP(_fused_adam__tensor_lr){
    .schema =
        "_fused_adam_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, "
        "Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor "
        "lr, "
        "float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, "
        "Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    .doc = "One step of Adam for every parameter in self. The learning rate is a tensor.",
    .forms = function,
    .meta = change_in_place,
    .cpu = cpu::fused_adam_kernel,
    .hole = of_optimizers,
};
OP(_fused_adamw_){
    .schema =
        "_fused_adamw_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, "
        "Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float "
        "lr, "
        "float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, "
        "Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    .doc = "One step of AdamW for every parameter in self.",
    .forms = function,
    .meta = change_in_place,
    .cpu = cpu::fused_adamw_kernel,
    .hole = of_optimizers,
};
OP(_fused_adamw__tensor_lr){
    .schema =
        "_fused_adamw_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, "
        "Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor "
        "lr, "
        "float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, "
        "Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    .doc = "One step of AdamW for every parameter in self. The learning rate is a tensor.",
    .forms = function,
    .meta = change_in_place,
    .cpu = cpu::fused_adamw_kernel,
    .hole = of_optimizers,
};
OP(_fused_sgd_){
    .schema =
        "_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, "
        "float weight_decay, float momentum, float lr, float dampening, bool nesterov, bool "
        "maximize, "
        "bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    .doc = "One step of SGD with momentum for every parameter in self.",
    .forms = function,
    .meta = change_in_place,
    .cpu = cpu::fused_sgd_kernel,
    .hole = of_optimizers,
};
OP(_fused_sgd__tensor_lr){
    .schema =
        "_fused_sgd_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] "
        "momentum_buffer_list, "
        "*, float weight_decay, float momentum, Tensor lr, float dampening, bool nesterov, "
        "bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    .doc =
        "One step of SGD with momentum for every parameter in self. The learning rate is a tensor.",
    .forms = function,
    .meta = change_in_place,
    .cpu = cpu::fused_sgd_kernel,
    .hole = of_optimizers,
};
OP(_fused_adagrad_){
    .schema =
        "_fused_adagrad_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, "
        "Tensor(d!)[] state_steps, *, float lr, float lr_decay, float weight_decay, float eps, "
        "bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    .doc = "One step of Adagrad for every parameter in self.",
    .forms = function,
    .meta = change_in_place,
    .cpu = cpu::fused_adagrad_kernel,
    .hole = of_optimizers,
};
OP(_fused_adagrad__tensor_lr){
    .schema =
        "_fused_adagrad_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, "
        "Tensor[] state_steps, *, Tensor lr, float lr_decay, float weight_decay, float eps, "
        "bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    .doc = "One step of Adagrad for every parameter in self. The learning rate is a tensor.",
    .forms = function,
    .meta = change_in_place,
    .cpu = cpu::fused_adagrad_kernel,
    .hole = of_optimizers,
};

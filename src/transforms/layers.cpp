#include "autograd/layer.h"
namespace facula { 
constinit const LayerHandler layer_handlers[layer_count] = {nullptr,nullptr,nullptr,nullptr,nullptr,nullptr,nullptr,nullptr,nullptr,nullptr,nullptr,nullptr,&autograd_layer};
}

// What agreement.cpp asks of the ranks of a group.
#pragma once
#include <string>

#include "collectives.h"

namespace ltc {
// Whether ranks are asked at all.
bool asks_others();
// A group as an argument of recorded operators: its name, and where ranks are asked, the line that recorded.
std::string group_argument(const std::string& name);
std::string group_name(const std::string& argument);
// Raises in all ranks, with what each of them says, unless all say the same.
void agree(const Engine& e, const std::string& group, const std::string& what);
}  // namespace ltc

// As context.h: c10d's ProcessGroupGloo.hpp includes this file and names nothing of it.
#pragma once

// A launch like an earlier one: its kernel is found without Triton's binder, cache key and metadata.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

namespace triton_spirv {

// A parameter of a kernel, and how triton.runtime.jit specialises its arguments.
struct Parameter {
  pybind11::str name;
  bool is_constexpr;
  // Of native_specialize_impl, behind the backend and the argument.
  pybind11::bool_ is_const;
  pybind11::bool_ specialize;
  pybind11::bool_ align;
};

// What a call has to be like to be one of `kernel`, by parameter or option.
struct Condition {
  enum class Kind { kConstant, kSpecialized };
  Kind kind;
  pybind11::object value;  // the constant; what specialising the argument gives
};

// Where a call has the argument of a parameter: by position, by keyword (the place among the keywords), or a default.
struct Source {
  enum class Kind { kPosition, kKeyword, kDefault };
  Kind kind;
  Py_ssize_t place;
  pybind11::object value;
};

// The launches of one kernel function that were made through Triton's own way, and are remembered.
class Relaunch {
 public:
  struct Launch {
    pybind11::object device;      // its index
    pybind11::object key;         // of the kernel in Triton's own cache for the device
    Py_ssize_t positions;         // arguments by position
    pybind11::tuple keywords;     // the names of the others, in their order
    std::vector<Source> sources;  // of each parameter's argument
    std::vector<Condition> parameters;
    std::vector<std::pair<Py_ssize_t, pybind11::object>> options;  // keywords that are no parameters, and their values
    pybind11::tuple knobs;                                         // as read_knobs() gives them
  };

  // `config`: Triton's DriverConfig. `driver`: who remembers; nothing is launched while another one is active. `knobs`:
  // the module triton.knobs. `specialize`: native_specialize_impl.
  Relaunch(pybind11::object config, pybind11::object driver, pybind11::object knobs, pybind11::object specialize,
           std::vector<Parameter> parameters);

  // Launches and returns the kernel, where `function`, a JITFunction, was launched with such arguments before and
  // nothing that Triton looks at has changed; otherwise returns None and has done nothing. Holds no kernel and no
  // function: they are in cycles, which the collector would not see through this object.
  pybind11::object launch(const pybind11::object& function, const pybind11::object& grid, const pybind11::tuple& args,
                          const pybind11::dict& keywords);

  // Remembers a launch, the latest first, instead of the oldest where there are many.
  void add(std::shared_ptr<const Launch> launch);
  // Whether a launch with that key, so many positions and those keywords is remembered of a device.
  bool knows(const pybind11::object& device, const pybind11::object& key, Py_ssize_t positions,
             const pybind11::tuple& keywords) const;
  // Whether so many launches were added that remembering costs more than it spares.
  bool gave_up() const { return added_ >= kMostAdded; }
  // The knobs that a launch depends on, with the function's own debug option: equal for equal settings. An empty tuple
  // where one is set that needs Triton's own way.
  pybind11::tuple read_knobs(const pybind11::object& function) const;

 private:
  static constexpr std::size_t kMostKept = 16;
  static constexpr std::size_t kMostAdded = 1024;

  bool is_like(const Launch& launch, PyObject* backend, const pybind11::tuple& args,
               const pybind11::dict& keywords) const;

  pybind11::object config_;
  pybind11::object driver_;
  pybind11::object knobs_;
  pybind11::object specialize_;
  std::vector<Parameter> parameters_;
  std::vector<std::shared_ptr<const Launch>> launches_;
  std::size_t added_ = 0;
};

}  // namespace triton_spirv

// A launch that equals an earlier one. Its kernel is found without Triton's binder, cache key and metadata.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

namespace triton_spirv {

// A parameter of a kernel, and how triton.runtime.jit specialises its arguments.
struct Parameter {
  pybind11::str name;
  bool is_constexpr;
  // Arguments of native_specialize_impl after the backend and the argument.
  pybind11::bool_ is_const;
  pybind11::bool_ specialize;
  pybind11::bool_ align;
};

// A condition on a parameter or an option that a call must meet to use the remembered kernel.
struct Condition {
  enum class Kind { kConstant, kSpecialized };
  Kind kind;
  pybind11::object value;  // the constant, or the result of specialising the argument
};

// Where a parameter's argument comes from: a position, a keyword (its place among the keywords), or the default.
struct Source {
  enum class Kind { kPosition, kKeyword, kDefault };
  Kind kind;
  Py_ssize_t place;
  pybind11::object value;
};

// The remembered launches of one kernel function. Triton's own code made each of them once.
class Relaunch {
 public:
  struct Launch {
    pybind11::object device;      // the device's index
    pybind11::object key;         // the kernel's key in Triton's own cache for the device
    Py_ssize_t positions;         // number of positional arguments
    pybind11::tuple keywords;     // names of the keyword arguments, in order
    std::vector<Source> sources;  // one for each parameter
    std::vector<Condition> parameters;
    std::vector<std::pair<Py_ssize_t, pybind11::object>> options;  // keywords that are not parameters, and their values
    pybind11::tuple knobs;                                         // from read_knobs()
  };

  // `config`: Triton's DriverConfig. `driver`: our driver; nothing is launched while another driver is active. `knobs`:
  // the module triton.knobs. `specialize`: native_specialize_impl.
  Relaunch(pybind11::object config, pybind11::object driver, pybind11::object knobs, pybind11::object specialize,
           std::vector<Parameter> parameters);

  // Launches and returns the kernel if `function`, a JITFunction, was launched with such arguments before and nothing
  // that Triton looks at has changed. Otherwise does nothing and returns None. This object holds no kernel and no
  // function, because they are in reference cycles that the garbage collector could not see through it.
  pybind11::object launch(const pybind11::object& function, const pybind11::object& grid, const pybind11::tuple& args,
                          const pybind11::dict& keywords);

  // Remembers a launch in front of the others, and drops the oldest launch if there are too many.
  void add(std::shared_ptr<const Launch> launch);
  // Whether a launch on the device with this key, number of positional arguments and keywords is remembered.
  bool knows(const pybind11::object& device, const pybind11::object& key, Py_ssize_t positions,
             const pybind11::tuple& keywords) const;
  // Whether so many launches were added that remembering costs more than it saves.
  bool gave_up() const { return added_ >= kMostAdded; }
  // The knobs that a launch depends on, and the function's own debug option. The tuple is empty if a knob is set that
  // needs Triton's own launch code.
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

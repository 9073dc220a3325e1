// Calls of Python's C API that may end the thread, because they take Python's lock or run Python.
//
// Up to Python 3.13, an interpreter that is being finalised ends each thread that asks for its lock, by unwinding the
// thread's stack. Destructors on that stack would then use Python without its lock. Here such a thread stops until the
// process ends, as in Python 3.14. The linker replaces the functions that this module and pybind11 call by the
// functions below (CMakeLists.txt). tests/unit/test_python_calls.py lists the other functions that may be called.
#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

#define OUTLIVED(Result, name, parameters, arguments) \
  extern "C" Result __real_##name parameters;         \
  extern "C" Result __wrap_##name parameters {        \
    try {                                             \
      return __real_##name arguments;                 \
    } catch (const abi::__forced_unwind&) {           \
      for (;;) pause();                               \
    }                                                 \
  }

// clang-format off
OUTLIVED(void, PyBuffer_Release, (Py_buffer* a), (a))
OUTLIVED(int, PyDict_Contains, (PyObject* a, PyObject* b), (a, b))
OUTLIVED(PyObject*, PyDict_GetItemWithError, (PyObject* a, PyObject* b), (a, b))
OUTLIVED(PyObject*, PyDict_SetDefault, (PyObject* a, PyObject* b, PyObject* c), (a, b, c))
OUTLIVED(int, PyErr_CheckSignals, (), ())
OUTLIVED(void, PyErr_Clear, (), ())
OUTLIVED(void, PyErr_NormalizeException, (PyObject** a, PyObject** b, PyObject** c), (a, b, c))
OUTLIVED(void, PyErr_Restore, (PyObject* a, PyObject* b, PyObject* c), (a, b, c))
OUTLIVED(void, PyErr_SetObject, (PyObject* a, PyObject* b), (a, b))
OUTLIVED(void, PyErr_WriteUnraisable, (PyObject* a), (a))
OUTLIVED(void, PyEval_AcquireThread, (PyThreadState* a), (a))
OUTLIVED(void, PyEval_RestoreThread, (PyThreadState* a), (a))
OUTLIVED(double, PyFloat_AsDouble, (PyObject* a), (a))
OUTLIVED(PyGILState_STATE, PyGILState_Ensure, (), ())
OUTLIVED(PyObject*, PyImport_ImportModule, (const char* a), (a))
OUTLIVED(PyObject*, PyIter_Next, (PyObject* a), (a))
OUTLIVED(long, PyLong_AsLong, (PyObject* a), (a))
OUTLIVED(long long, PyLong_AsLongLong, (PyObject* a), (a))
OUTLIVED(long long, PyLong_AsLongLongAndOverflow, (PyObject* a, int* b), (a, b))
OUTLIVED(PyObject*, PyNumber_Add, (PyObject* a, PyObject* b), (a, b))
OUTLIVED(PyObject*, PyNumber_Float, (PyObject* a), (a))
OUTLIVED(PyObject*, PyNumber_Index, (PyObject* a), (a))
OUTLIVED(PyObject*, PyNumber_Invert, (PyObject* a), (a))
OUTLIVED(PyObject*, PyNumber_Long, (PyObject* a), (a))
OUTLIVED(PyObject*, PyObject_Call, (PyObject* a, PyObject* b, PyObject* c), (a, b, c))
OUTLIVED(PyObject*, PyObject_CallNoArgs, (PyObject* a), (a))
OUTLIVED(PyObject*, PyObject_CallObject, (PyObject* a, PyObject* b), (a, b))
OUTLIVED(PyObject*, PyObject_CallOneArg, (PyObject* a, PyObject* b), (a, b))
OUTLIVED(void, PyObject_ClearWeakRefs, (PyObject* a), (a))
OUTLIVED(PyObject*, PyObject_GenericGetAttr, (PyObject* a, PyObject* b), (a, b))
OUTLIVED(PyObject*, PyObject_GetAttr, (PyObject* a, PyObject* b), (a, b))
OUTLIVED(PyObject*, PyObject_GetAttrString, (PyObject* a, const char* b), (a, b))
OUTLIVED(PyObject*, PyObject_GetItem, (PyObject* a, PyObject* b), (a, b))
OUTLIVED(PyObject*, PyObject_GetIter, (PyObject* a), (a))
OUTLIVED(int, PyObject_HasAttrString, (PyObject* a, const char* b), (a, b))
OUTLIVED(int, PyObject_IsInstance, (PyObject* a, PyObject* b), (a, b))
OUTLIVED(int, PyObject_IsTrue, (PyObject* a), (a))
OUTLIVED(PyObject*, PyObject_Repr, (PyObject* a), (a))
OUTLIVED(int, PyObject_RichCompareBool, (PyObject* a, PyObject* b, int c), (a, b, c))
OUTLIVED(int, PyObject_SetAttr, (PyObject* a, PyObject* b, PyObject* c), (a, b, c))
OUTLIVED(int, PyObject_SetAttrString, (PyObject* a, const char* b, PyObject* c), (a, b, c))
OUTLIVED(int, PyObject_SetItem, (PyObject* a, PyObject* b, PyObject* c), (a, b, c))
OUTLIVED(Py_ssize_t, PyObject_Size, (PyObject* a), (a))
OUTLIVED(PyObject*, PyObject_Str, (PyObject* a), (a))
OUTLIVED(PyObject*, PyObject_Vectorcall, (PyObject* a, PyObject* const* b, size_t c, PyObject* d), (a, b, c, d))
OUTLIVED(PyObject*, PyObject_VectorcallMethod, (PyObject* a, PyObject* const* b, size_t c, PyObject* d), (a, b, c, d))
OUTLIVED(PyObject*, PySequence_GetItem, (PyObject* a, Py_ssize_t b), (a, b))
OUTLIVED(Py_ssize_t, PySequence_Size, (PyObject* a), (a))
OUTLIVED(PyObject*, PySequence_Tuple, (PyObject* a), (a))
OUTLIVED(void, PyThreadState_Clear, (PyThreadState* a), (a))
OUTLIVED(void, _Py_Dealloc, (PyObject* a), (a))
// clang-format on

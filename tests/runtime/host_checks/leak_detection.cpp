// The kernels of these tests are unloaded again, and LeakSanitizer (g++ 12) may die of the thread-local storage that
// they had: "Tracer caught signal 11", after a test that passed. What these tests look for is bounds, races and
// undefined behaviour.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

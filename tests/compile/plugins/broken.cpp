// A library that is no plug-in: it exports something else.
extern "C" {
extern int tessera_plugin;
int tessera_plugin = 6;
}

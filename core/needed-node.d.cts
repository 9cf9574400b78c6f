// It exports nothing: loading it checks the version of Node.js.
// oxlint-disable-next-line unicorn/require-module-specifiers -- without it, the file would declare globals
export {};

// What programs that call models share with the service. It runs in browsers.
export { TOOL_ERROR_MARK } from "@portico/core/contract";
export { REQUEST_BYTES } from "./limits.ts";

// What programs that call models share with the service. It runs in browsers.
export { REQUEST_BYTES } from "./limits.ts";

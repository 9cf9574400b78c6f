// What programs that sign users in share with the service. It runs in browsers.
export { WRONG_CODES } from "./limits.ts";

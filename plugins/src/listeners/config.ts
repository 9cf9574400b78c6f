import * as v from "valibot";

/** Surface name to URL. The function is called for each request, because ports may be assigned after the app was built. */
export type Listeners = () => Readonly<Record<string, string>>;

/** Options of the page of listeners. */
export const listenersConfig = v.strictObject({
  /** The URL of each surface that the host knows. */
  urls: v.custom<Listeners>((value) => typeof value === "function", "a function"),
});

import * as v from "valibot";

/** Surface name to URL. Ports may be assigned after the app was built: the function is called for each request. */
export type Listeners = () => Readonly<Record<string, string>>;

/** Options of the page of listeners. */
export const listenersConfig = v.strictObject({
  /** Where each surface is reached, as far as the host knows. */
  urls: v.custom<Listeners>((value) => typeof value === "function", "a function"),
});

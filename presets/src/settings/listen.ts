import { fromEnv } from "@portico/core";
import * as v from "valibot";

/** The default address of every area: only this machine, and a port that the system chooses at the first start (open points 1). */
export function listenSchema(area: string) {
  return v.optional(listenGroup(area), {});
}

/** The same for a listener that exists only if the settings have it. */
export function optionalListenSchema(area: string) {
  return v.optional(listenGroup(area, `; opened only if \`${area.toLowerCase()}.listen\` is set`));
}

function listenGroup(area: string, more = "") {
  const host = v.pipe(
    v.string(),
    v.regex(/^[^\s/@]+$/, "a host name or an IP address"),
    v.description(`Address that the ${area.toLowerCase()} listener binds${more}.`),
  );
  const port = v.pipe(
    v.number(),
    v.integer(),
    v.minValue(0),
    v.maxValue(65535),
    v.description(
      `Port of the ${area.toLowerCase()} listener. Without it, the system chooses one at the first start, and later starts use the same one if it is free. With 0 the system chooses one at every start.`,
    ),
  );
  return v.strictObject({
    host: v.optional(fromEnv(`PORTICO_${area}_HOST`, host), "127.0.0.1"),
    port: v.optional(fromEnv(`PORTICO_${area}_PORT`, port)),
  });
}

/** The address at which outside callers reach an area, for example the address of a reverse proxy. */
export function publicUrlSchema(area: string) {
  const url = v.pipe(
    v.string(),
    v.check(isPublicUrl, "an http or https URL without credentials, query and fragment"),
    v.description(
      `Public address of the ${area.toLowerCase()} listener, such as a reverse proxy's. Requests may use its host name.`,
    ),
  );
  return v.optional(fromEnv(`PORTICO_${area}_PUBLIC_URL`, url));
}

/** Where one surface listens. */
export interface ListenAddress {
  readonly host: string;
  /** With 0 the system chooses one. Default: the port of the last start if the data directory has one that is free, or else as with 0. */
  readonly port?: number | undefined;
  /** The public address. Requests may use its host name, in addition to `host` and the loopback names of this machine. */
  readonly publicUrl?: string | undefined;
}

function isPublicUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && !/[?#@]/.test(text);
}

/** A text that is not empty. */
export function text() {
  return v.pipe(v.string(), v.nonEmpty());
}

/** An origin of web pages. */
export function origin() {
  return v.pipe(v.string(), v.check(isOrigin, "an origin, such as https://app.example"));
}

function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === text;
}

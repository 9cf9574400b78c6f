import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { acceptedCoding, checkConditions, definePlugin, type RequestHead } from "@portico/core";
import { defineContract, defineErrors, reply } from "@portico/core/contract";
import * as v from "valibot";

/** The paths of the files that a build has in addition to its page. Other paths are not served. */
const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  woff2: "font/woff2",
};

const config = v.strictObject({
  /**
   * The URL of each surface, by name. The page may call these URLs in addition to its own origin. The function is called for each request.
   * Default: the page can call only its own origin.
   */
  urls: v.optional(v.custom<() => Readonly<Record<string, string>>>((value) => typeof value === "function", "a function")),
  /** A folder with a built console; default: the one that this package ships. */
  built: v.optional(v.instance(URL)),
});

/** Options of the web console, as callers write them. */
export type WebConsoleOptions = v.InferInput<typeof config>;

/** The files of the web console. They contain no data of an instance, so they need no credential. */
const contract = defineContract(
  { surface: "agent", auth: "open", envelope: (error) => ({ error: error.message, code: error.code }) },
  {
    page: { method: "GET", path: "/", summary: "The web console", success: reply.bytes() },
    file: {
      method: "GET",
      path: "/console/:file",
      summary: "A script, a style or a font of the web console",
      params: v.strictObject({ file: v.string() }),
      success: reply.bytes(),
      errors: defineErrors({ console_file_not_found: { status: 404 } }),
    },
  },
);

/** The plugin's name. */
export const WEB_CONSOLE = "web-console";

/**
 * The web console at `/` of surface `agent`. The page loads without a credential, but can do nothing until a user has signed in. It calls the
 * areas of surface `agent`, and needs the plugin `listeners` on the same surface.
 */
export const webConsole = definePlugin({
  name: WEB_CONSOLE,
  summary: "The web console's own files.",
  config,
  needs: {},
  contract,
  setup: (_given, { urls = () => ({}), built = BUILT }) => ({
    async page({ head }) {
      const page = await readBuilt(new URL("index.html", built));
      if (!page) return notBuilt();
      const policy = contentSecurityPolicy(Object.values(urls()));
      // The policy changes with the listeners' ports, so a cached page must not keep an old policy.
      const digest = createHash("sha256").update(policy).update(page).digest("base64url");
      return answer(head, page, {
        "content-type": "text/html; charset=utf-8",
        "cache-control": "no-cache",
        etag: `"${digest}"`,
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
      });
    },
    async file({ head, params, fail }) {
      const [, extension = ""] = /^[\w-]+\.(\w+)$/.exec(params.file) ?? [];
      const type = TYPES[extension];
      if (type === undefined) throw fail.console_file_not_found();
      const path = new URL(`console/${params.file}`, built);
      const packed = acceptedCoding(head, ["gzip"]) ? await readBuilt(new URL(`${path.href}.gz`)) : undefined;
      const file = packed ?? (await readBuilt(path));
      if (!file) throw fail.console_file_not_found();
      return answer(head, file, {
        "content-type": type,
        // The file's name contains a digest of its content.
        "cache-control": "public, max-age=31536000, immutable",
        etag: packed ? `"${params.file}.gz"` : `"${params.file}"`,
        vary: "accept-encoding",
        ...(packed && { "content-encoding": "gzip" }),
      });
    },
  }),
});

function answer(head: RequestHead, body: Uint8Array<ArrayBuffer>, headers: Record<string, string>): Response {
  const all = { ...headers, "x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin" };
  const outcome = checkConditions(head, { etag: headers["etag"] });
  if (outcome === "precondition_failed") return new Response(null, { status: 412 });
  if (outcome === "not_modified") return new Response(null, { status: 304, headers: all });
  return new Response(body, { headers: { ...all, "content-length": String(body.byteLength) } });
}

function notBuilt(): Response {
  return new Response("The web console is not built: run `npm run console` in Portico's repository.\n", {
    status: 503,
    headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store", "x-content-type-options": "nosniff" },
  });
}

/** The folder of this package into which `npm run console` builds. Found from package.json, because a build of the package may move modules. */
const BUILT = new URL("page/", import.meta.resolve("#package.json"));

/** Reads the file at every request, so that a new build is served immediately. The system caches these few hundred kilobytes. */
async function readBuilt(file: URL): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    return await readFile(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Allows only what the console's own files need. The console calls only this process, and other pages cannot frame it. */
function contentSecurityPolicy(urls: readonly string[]): string {
  const origins = [...new Set(urls.map((url) => new URL(url).origin))];
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "font-src 'self'",
    // Images that a user is about to send are shown from memory.
    "img-src 'self' blob:",
    "media-src 'self' blob:",
    ["connect-src 'self'", ...origins].join(" "),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    // Only compiled templates create markup.
    "require-trusted-types-for 'script'",
    "trusted-types svelte-trusted-html",
  ].join("; ");
}

import { ports } from "@portico/core";
import type { ServedProvider } from "@portico/presets/platform/provider-choice";

/** What a failed call means, and what to do about it, as sentences for a person. */
export interface Explanation {
  readonly message: string;
  readonly fix: string;
}

/** How much of the vendor's own text is shown. It may be a whole page. */
const LONGEST_WORDS = 200;

interface Rule {
  readonly status?: readonly number[];
  /** What the vendor's text contains. */
  readonly words?: RegExp;
  readonly meaning: string;
  readonly fix: (provider: ServedProvider) => string;
}

/**
 * The first rule that applies counts. A status alone is ambiguous: Google answers an invalid key with 400 (ai.google.dev,
 * troubleshooting), Anthropic an account without money with 400 (docs.claude.com, errors), and OpenAI with 429 and
 * `insufficient_quota` (platform.openai.com, error codes).
 */
const RULES: readonly Rule[] = [
  {
    status: [400, 403],
    words: /user location|country|region|territor/i,
    meaning: "the vendor does not serve the region of this machine",
    fix: () => "use a base URL of a region that the vendor serves, or another vendor",
  },
  { status: [400, 401, 403], words: /api.?key|authenti|credential|token/i, meaning: "it refuses the key", fix: fixKey },
  {
    status: [400, 402, 403, 429],
    words: /quota|billing|credit|balance|payment|spend/i,
    meaning: "the key is valid, but its account has no money or quota left",
    fix: () => "add credit or raise the limit in the vendor's console",
  },
  { status: [401], meaning: "it refuses the key", fix: fixKey },
  { status: [402], meaning: "its account has no money left", fix: () => "add credit in the vendor's console" },
  {
    status: [400, 403, 404, 422],
    words: /model|deployment/i,
    meaning: "it does not know the model, or the key may not use it",
    fix: () => "correct the name in `models`, or ask the vendor for access to the model",
  },
  {
    status: [403],
    meaning: "it forbids the call: the key lacks a permission, or a firewall on the way refuses this machine",
    fix: () => "check the permissions of the key and the allowed addresses in the vendor's console",
  },
  { status: [404, 405], meaning: "the address is wrong: there is no such path", fix: fixAddress },
  {
    status: [407],
    meaning: "a proxy on the way demands its own login",
    fix: () => "allow direct connections from this machine to the address in `baseUrl`",
  },
  {
    status: [429],
    meaning: "the key is valid, but limited at the moment",
    fix: () => "try again in a minute; `retry`, `keys` and `concurrency` of the provider help if this happens often",
  },
];

/** Codes of connections that failed. */
const CODES: readonly { readonly code: RegExp; readonly meaning: string; readonly fix: string }[] = [
  {
    code: /^PROXY_407$/,
    meaning: "the proxy of `outbound.proxy` asks for a user and a password",
    fix: "write them into `outbound.proxy`: http://user:password@host:port",
  },
  {
    code: /^PROXY_\d/,
    meaning: "the proxy of `outbound.proxy` refuses the connection",
    fix: "allow the provider's host in the rules of the proxy, or add it to `outbound.noProxy`",
  },
  {
    code: /^PROXY_/,
    meaning: "the proxy of `outbound.proxy` cannot be reached, or does not speak HTTP",
    fix: "correct `outbound.proxy`, or add the provider's host to `outbound.noProxy`",
  },
  {
    code: /^(ENOTFOUND|EAI_AGAIN|EAI_NODATA)$/,
    meaning: "the name in its address is unknown to DNS",
    fix: "correct `baseUrl`, or the DNS of this machine",
  },
  { code: /^ECONNREFUSED$/, meaning: "nothing listens at its address", fix: "correct `baseUrl`, or start the model server" },
  {
    code: /CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET)/,
    meaning: "its TLS certificate is not trusted, or is for another name",
    fix: "set `outbound.ca` to the file of your own certificate authority, or correct the host name in `baseUrl`",
  },
  {
    code: /SSL|EPROTO|TLS/,
    meaning: "TLS failed: the port may speak plain HTTP",
    fix: "use http:// in `baseUrl` for a server without TLS, or correct the port",
  },
  {
    code: /^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT|ENETUNREACH|EHOSTUNREACH|ENETDOWN)$/,
    meaning: "its address cannot be reached: a firewall or a missing route drops the connection",
    fix: "allow connections from this machine to the address in `baseUrl`",
  },
  {
    code: /./,
    meaning: "the connection broke before an answer",
    fix: "check `baseUrl`: the port may speak TLS or another protocol. Check proxies and firewalls on the way",
  },
];

/** Says what the error of a call means. Contains the vendor's words, without the credential. `model` is undefined if the list of models failed. */
export function explainRefusal(error: unknown, provider: ServedProvider, model: string | undefined): Explanation {
  const { message, status } = error as { readonly message: string; readonly status?: number };
  if (error instanceof ports.ModelUnreachable || error instanceof ports.ModelTimeout) return explainConnection(message);
  const named = model === undefined ? "the provider" : model;
  if (status === undefined)
    return {
      message: `${named}: the answer is not one of the protocol "${provider.protocol}": the protocol or the address is wrong`,
      fix: fixAddress(provider),
    };
  const words = message.replace(/^[^:]*: /, "").slice(0, LONGEST_WORDS);
  const rule = RULES.find((each) => each.status?.includes(status) && (each.words?.test(words) ?? true));
  const meaning = rule?.meaning ?? (status >= 500 ? "the vendor has a fault or is overloaded" : "it refuses the call");
  return {
    message: `${named}: ${meaning} (status ${status}: ${words})`,
    fix: rule?.fix(provider) ?? (status >= 500 ? "try again later, and look at the vendor's status page" : fixAddress(provider)),
  };
}

function explainConnection(message: string): Explanation {
  if (/no credential from its command/.test(message))
    return { message, fix: "run the command of `credential` as the user of the service, and look at what it prints" };
  const status = Number(/\bstatus (\d{3})\b/.exec(message)?.[1]);
  if (status) return { message, fix: "name a model in `models`: then no list of models is needed" };
  const code = /\((\w+)\)$/.exec(message)?.[1] ?? (/in time/.test(message) ? "ETIMEDOUT" : "OTHER");
  const known = CODES.find((each) => each.code.test(code))!;
  return { message: `${known.meaning} (${code})`, fix: proxyFix(known.fix) };
}

/** A machine whose programs need a proxy has one of these variables. */
function proxyFix(fix: string): string {
  const name = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"].find((each) => process.env[each]);
  return name ? `${fix}. ${name} is set, but calls use only the proxy of \`outbound.proxy\`` : fix;
}

function fixKey({ origin }: ServedProvider): string {
  return origin === "found" ? "correct the key in its environment variable" : "correct the key in its `credential` or `keys`";
}

/** Vendors have their protocols below `/v1` or a similar path: the most frequent mistake is a base URL without it. */
function fixAddress({ baseUrl, protocol }: ServedProvider): string {
  const path = baseUrl === undefined ? "" : new URL(baseUrl).pathname;
  const missing = /\/v\d/.test(path) ? "" : "most vendors have it below `/v1`, which is missing in `baseUrl`; ";
  const other = protocol === "messages" ? "chat-completions" : "messages";
  return `${missing}correct \`baseUrl\`: the part before \`/messages\` or \`/chat/completions\`; or set \`protocol\` to "${other}"`;
}

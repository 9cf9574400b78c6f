import { childrenOf, expectRoot, textOf } from "./read-xml.ts";
import type { StoreClient } from "./store-client.ts";

const PAGE = "1000";

/** Names of objects that begin with the client's prefix and this one, without the client's. */
export async function* listKeys(client: StoreClient, prefix: string, signal: AbortSignal): AsyncGenerator<string, void> {
  // Encoded, because names of other objects may contain characters that XML does not allow.
  const query = { "list-type": "2", "encoding-type": "url", prefix: client.prefix + prefix, "max-keys": PAGE };
  for (let token = ""; ;) {
    const from: Record<string, string> = token === "" ? {} : { "continuation-token": token };
    const { root } = await client.ask({ method: "GET", query: { ...query, ...from } }, signal);
    const page = expectRoot(root, "ListBucketResult");
    const isEncoded = textOf(page, "EncodingType") === "url";
    for (const object of childrenOf(page, "Contents")) {
      const name = textOf(object, "Key");
      yield (isEncoded ? decodeName(name) : name).slice(client.prefix.length);
    }
    if (textOf(page, "IsTruncated") !== "true") return;
    token = textOf(page, "NextContinuationToken");
    if (token === "") throw new Error("The store did not say where its list continues");
  }
}

export function decodeName(name: string): string {
  return decodeURIComponent(name.replaceAll("+", " "));
}

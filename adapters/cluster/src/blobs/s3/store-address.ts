import { ports } from "@portico/core";

export interface StoreAddressOptions {
  readonly endpoint: string;
  readonly bucket: string;
  readonly prefix?: string;
  readonly addressing?: "path" | "host";
}

/** Addresses of a bucket's objects. */
export interface StoreAddress {
  readonly origin: string;
  /** Prefix of the names of all objects. */
  readonly prefix: string;
  /** The address of a blob, or of the bucket itself. */
  toUrl(key: string | undefined, query: Readonly<Record<string, string>>): URL;
}

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** Throws TypeError for invalid options. */
export function createStoreAddress({ endpoint, bucket, prefix = "", addressing = "path" }: StoreAddressOptions): StoreAddress {
  const base = parseEndpoint(endpoint);
  if (!BUCKET.test(bucket)) throw new TypeError("A bucket's name is 3-63 small letters, digits, dots and hyphens");
  // Then no name needs encoding, in an address or in a signature.
  if (prefix !== "" && !ports.isBlobKey(`${prefix}x`)) throw new TypeError("A prefix must be one that a key can begin with");
  if (addressing === "host") base.hostname = `${bucket}.${base.hostname}`;
  // The bucket's own address has no slash at its end, because stores sign it differently.
  const folder = base.pathname.replace(/\/$/, "") + (addressing === "host" ? "" : `/${bucket}`);
  return {
    origin: base.origin,
    prefix,
    toUrl(key, query) {
      const url = new URL(key === undefined ? folder || "/" : `${folder}/${prefix}${key}`, base);
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
      return url;
    },
  };
}

function parseEndpoint(endpoint: string): URL {
  // An own message: the invalid part of the URL may be a password.
  const url = URL.parse(endpoint);
  const isPlain = url && /^https?:$/.test(url.protocol) && url.username + url.password + url.search + url.hash === "";
  if (!isPlain) throw new TypeError("The endpoint of a store is an http(s) address without credentials, query or fragment");
  return url;
}

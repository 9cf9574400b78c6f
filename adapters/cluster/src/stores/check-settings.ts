/** Checks of settings that adapters make when they open, for programs that check a configuration before. */
export { createStoreAddress } from "../blobs/s3/store-address.ts";
export { checkConnectionUrl } from "../records/postgres/connection-url.ts";
export { checkSchema } from "../records/postgres/names.ts";

// The suite with the example of the page. `npm run test:packages` runs the same file outside the workspace.
import "../../playground/own-protocol.test.ts";

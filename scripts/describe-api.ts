// Prints openapi.json; the build keeps it in dist.
import { describeApi } from "../src/channels/http/openapi.ts";
import { createHttp, type HttpDeps } from "../src/channels/http/server.ts";

// Routes only describe themselves here, so their dependencies are not needed.
const { app } = createHttp({} as unknown as HttpDeps);
console.log(JSON.stringify(describeApi(app, process.argv[2] ?? "")));

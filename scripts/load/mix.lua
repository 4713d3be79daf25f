-- A client of wrk: asks for one of its paths at random, waits about a second, and asks again.
-- Arguments after `--`: the bearer token, the mean pause in milliseconds, then paths.

local token, pause, paths = nil, 0, {}
local threads = {}

function setup(thread)
   thread:set("number", #threads)
   table.insert(threads, thread)
end

function init(arguments)
   token, pause = arguments[1], tonumber(arguments[2])
   for index = 3, #arguments do paths[index - 2] = arguments[index] end
   math.randomseed(number + 1)
   headers = { authorization = "Bearer " .. token }
   refused = 0
end

function delay() return math.random(0, 2 * pause) end

function request() return wrk.format("GET", paths[math.random(#paths)], headers) end

function response(status) if status ~= 200 then refused = refused + 1 end end

-- One line of JSON: times in milliseconds.
function done(summary, latency, requests)
   local refused = 0
   for _, thread in ipairs(threads) do refused = refused + thread:get("refused") end
   local errors = summary.errors
   io.write(string.format(
      '{"requests": %d, "seconds": %.1f, "refused": %d, "failed": %d, "p50": %.1f, "p95": %.1f, "p99": %.1f, "most": %.1f}\n',
      summary.requests, summary.duration / 1e6, refused,
      errors.connect + errors.read + errors.write + errors.timeout,
      latency:percentile(50) / 1e3, latency:percentile(95) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3))
end

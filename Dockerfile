# riffle as `make package` made it, in a bare Debian 12:
#   make package && docker build -t riffle . && docker run --rm -v $PWD:/work riffle --version
FROM debian:12-slim
COPY build/packages/riffle_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/riffle_*.deb \
    && rm -rf /tmp/riffle_*.deb /var/lib/apt/lists/*
WORKDIR /work
ENTRYPOINT ["riffle"]

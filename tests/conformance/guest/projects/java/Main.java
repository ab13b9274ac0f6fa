// SPDX-License-Identifier: Apache-2.0
import java.io.InputStream;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;

public class Main {
    static String talk() throws Exception {
        try (var server = new ServerSocket(0)) {
            var thread = new Thread(() -> {
                try (Socket socket = server.accept()) {
                    socket.getOutputStream().write("hello".getBytes());
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            });
            thread.start();
            try (var socket = new Socket("localhost", server.getLocalPort()); InputStream in = socket.getInputStream()) {
                return new String(in.readAllBytes());
            }
        }
    }

    static int pooled() throws Exception {
        var pool = Executors.newFixedThreadPool(8);
        var results = IntStream.range(0, 100).mapToObj(n -> pool.submit(() -> n)).toList();
        int sum = 0;
        for (var result : results) sum += result.get();
        pool.shutdown();
        return sum;
    }

    public static void main(String[] args) throws Exception {
        Path file = Files.createTempFile("main", "txt");
        Files.writeString(file, "text");
        var echo = new ProcessBuilder("cat", file.toString()).start();
        String read = new String(echo.getInputStream().readAllBytes());
        System.gc();
        System.out.println(talk() + " " + pooled() + " " + read + " " + Runtime.version().feature());
    }
}
